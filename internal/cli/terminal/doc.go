// Package terminal prepares text for a terminal.
//
// Texts come from clusters and packages that may be hostile, so all of them go through
// Line or Text, which escape what could move the cursor, change colours or reverse the
// reading direction; WriteJSON and WriteYAML have the escapes of their formats.
//
// Colour is used only on a terminal, and not with NO_COLOR (https://no-color.org) or
// TERM=dumb.
package terminal
