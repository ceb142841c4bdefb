// Package sensitive finds values that came from Secrets in other text, and takes
// them out of messages.
//
// A value of at least limits.SensitiveLength bytes is found where it stands
// verbatim, without the white space around it, escaped (JSON, YAML, URL, HTML, the
// first two also several times), in other letters, indented, wrapped, or within
// base64, base64 of base64, base32 or hex, at every alignment. Shorter values occur by
// chance and are not looked for. A value that a template takes apart or hashes is not
// found.
//
// In messages, every part of that length of a value or of its base64 is replaced,
// because libraries cut what they quote; shorter values where they stand as a word.
//
// Values are never part of an error. A nil *Values has none, and finds nothing.
//
// Limits: limits.SensitiveBytes bounds memory, limits.SensitiveWork time.
package sensitive
