// Package sensitive finds values of Secrets in other text, and redacts messages.
//
// A value of at least limits.SensitiveLength bytes is found verbatim, trimmed, escaped
// (JSON, YAML, URL, HTML, the first two repeatedly), in other letters, indented,
// wrapped, or in base64, base64 of base64, base32 or hex at every alignment. A value
// that a template splits or hashes is not found.
//
// In messages, every part of that length of a value or of its base64 is replaced,
// because libraries truncate what they quote; shorter values where they are a word.
//
// Values are never part of an error. A nil *Values finds nothing.
//
// Limits: limits.SensitiveBytes bounds memory, limits.SensitiveWork time.
package sensitive
