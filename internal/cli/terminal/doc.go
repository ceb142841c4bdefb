// Package terminal prepares text for a person's screen.
//
// Names, messages and files come from clusters and packages that may be
// hostile, so everything that is printed goes through Line or Text, which turn
// what could move the cursor, change colours or reverse the reading direction
// into visible escapes. JSON and YAML have functions of their own, because
// their escapes differ.
//
// Colour is used only on a terminal, and never where NO_COLOR is set
// (https://no-color.org) or TERM is dumb.
package terminal
