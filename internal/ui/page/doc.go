// Package page draws what kubectl package ui shows: pure functions from observed state to HTML.
//
//	Board  ─► ListOf     ─┐
//	Detail ─► PackageOf  ─┼─► Page: fragments with a digest each ─► Write (a document), or Changed (what a stream sends)
//	          DiffOf     ─┘
//
// Texts are of clusters and packages that may be hostile: html/template escapes markup,
// terminal.Line characters that are invisible or reverse text, and each has at most
// pageTextBytes. No configuration of a package is read, and no value of a Secret.
//
// Everything works without script: links, the filter and details. The one module replaces fragments while the page is looked at.
// States have a shape and a word beside their colour.
package page
