// Package ui serves kubectl package ui: a page on this machine that shows the installed
// packages, what they wait for, and why.
//
//	cluster ─► watches (rights of the user) ─► page (pure: observed state → HTML) ─► guard (one browser) ─► browser
//
// It lives as long as the command, and changes nothing in the cluster.
package ui
