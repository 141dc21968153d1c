// Runs before the page is painted, so that a chosen theme does not flash the other one.
(function () {
    try {
        var theme = JSON.parse(localStorage.getItem('llm-server.preferences') || '{}').theme;
        if (theme === 'light' || theme === 'dark') {
            document.documentElement.dataset.theme = theme;
        }
    } catch (error) {
        // the browser keeps nothing: the system's theme is used
    }
})();
