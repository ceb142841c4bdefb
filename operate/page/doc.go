// Package page tests the page of kubectl package ui in a real browser: Debian's headless Chromium, driven by its own protocol, and
// the rules of axe. It starts the program against an API server of its own, which keeps objects as they are given to it, so that
// every state is there at once and looks the same in each picture.
//
// What it needs is fetched once into the cache, by apt-get and npm as they are set up on this machine.
package page
