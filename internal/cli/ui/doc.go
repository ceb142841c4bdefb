// Package ui serves kubectl package ui: a page on this machine that shows what is installed, what it waits for, and why.
//
//	cluster ─► watches (rights of the user) ─► page (pure: what was observed → HTML) ─► guard (one browser) ─► browser
//
// It lives as long as the command. Nothing is written but by --allow-changes.
package ui
