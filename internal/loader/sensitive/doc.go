// Package sensitive finds values of Secrets in other text, and redacts messages.
//
// A value of at least limits.SensitiveLength bytes is found verbatim, trimmed, escaped, in other letters, wrapped, or in
// base64, base64 of base64, base32 or hex at every alignment; not where a template splits or hashes it. In messages,
// every part of that length is replaced, because libraries truncate what they quote; shorter values where they are a
// word.
//
// Values are never part of an error. A nil *Values finds nothing.
package sensitive
