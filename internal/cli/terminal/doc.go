// Package terminal prepares text for a terminal.
//
// Texts come from clusters and packages that might be hostile. Line and Text escape everything in
// them that could move the cursor, change colours or reverse the reading direction. WriteJSON and
// WriteYAML use the escapes of their formats.
//
// Colour is only used on a terminal, and not with NO_COLOR (https://no-color.org) or TERM=dumb.
package terminal
