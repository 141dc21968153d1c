};
const loaded = {};

/** The module with this name; an empty one, if it is not here: what calls it is not called by the page. */
function load(name) {
    const path = ['', '.js', '.json', '/index.js'].map((ending) => name + ending).find((p) => Object.hasOwn(files, p));
    if (!path) {
        return {};
    }
    if (!loaded[path]) {
        loaded[path] = { exports: {} };
        files[path](loaded[path], loaded[path].exports, (other) => load(resolve(path, other)));
    }
    return loaded[path].exports;
}

function resolve(from, name) {
    return name.startsWith('.') ? new URL(name, 'file:///' + from).pathname.slice(1) : 'node_modules/' + name;
}
