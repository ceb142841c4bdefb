// Package page tests the page of kubectl package ui in a real browser: Debian's headless Chromium,
// driven by its own protocol, and the rules of axe. It starts the program against its own API
// server, which keeps objects as they are, so that every state exists at once and looks the same in
// each picture.
//
// Its requirements are fetched once into the cache, with apt-get and npm as configured on this
// machine.
package page
