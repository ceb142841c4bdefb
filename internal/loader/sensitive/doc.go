// Package sensitive finds values of Secrets in other text, and redacts messages.
//
// It finds a value of at least limits.SensitiveLength bytes verbatim, trimmed, escaped, in another
// case, wrapped, or in base64, base64 of base64, base32 or hex at every alignment. It does not find
// a value that a template splits or hashes. In messages, it replaces every part of that length,
// because libraries truncate quoted values. It replaces shorter values if they are a word.
//
// Values are never part of an error. A nil *Values finds nothing.
package sensitive
