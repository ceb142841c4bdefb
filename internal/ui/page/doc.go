// Package page draws the pages of kubectl package ui: pure functions from observed state to HTML.
//
//	Board  ─► ListOf     ─┐
//	Detail ─► PackageOf  ─┼─► Page: fragments with a digest each ─► Write (a document), or Changed (for a stream)
//	          DiffOf     ─┘
//
// Texts come from clusters and packages that might be hostile: html/template escapes markup,
// terminal.Line escapes characters that are invisible or reverse text, and each text has at most
// pageTextBytes. No configuration of a package is read, and no value of a Secret.
//
// Links, the filter and details work without script. The only module replaces fragments while the
// page is visible. States have a shape and a word in addition to their colour.
package page
