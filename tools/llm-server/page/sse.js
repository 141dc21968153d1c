// Server-sent events: text that arrives in pieces becomes the data of events.

export class EventStream {
    constructor() {
        this.line = ''; // the unfinished line
        this.data = []; // the lines of data of the unfinished event
        this.cr = false; // the last piece ended with a carriage return, whose newline may follow
    }

    /** Takes a piece; returns the data of the events that it completes. */
    push(text) {
        const events = [];
        if (this.cr && text.startsWith('\n')) {
            text = text.slice(1);
        }
        this.cr = text === '' ? this.cr : text.endsWith('\r');
        const lines = text.split(/\r\n|\n|\r/);
        for (let k = 0; k < lines.length - 1; k++) {
            this.take(this.line + lines[k], events);
            this.line = '';
        }
        this.line += lines.at(-1);
        return events;
    }

    /** The data of an event that the end of the stream leaves without its blank line. */
    end() {
        const events = [];
        this.take(this.line, events);
        this.take('', events);
        this.line = '';
        return events;
    }

    take(line, events) {
        if (line === '') {
            if (this.data.length) {
                events.push(this.data.join('\n'));
            }
            this.data = [];
        } else if (line === 'data' || line.startsWith('data:')) {
            const value = line.slice(5);
            this.data.push(value.startsWith(' ') ? value.slice(1) : value);
        }
    }
}
