// Buttons that do nothing without a script are disabled until the scripts of their page have run: this one is the last of them.
import { wire } from "./text.js";

wire(document);
