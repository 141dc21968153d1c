// How the text of an answer is shown: as Markdown if the build found markdown-it, else as it is written.

import MarkdownIt from './markdown-it.js';
import { Plain } from './plain.js';
import { Markdown } from './stream.js';

export const Renderer = MarkdownIt ? Markdown : Plain;
