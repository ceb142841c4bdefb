// Package ui serves kubectl package ui: a page on this machine that shows the installed packages,
// the objects they wait for, and the reasons.
//
//	cluster ─► watches (rights of the user) ─► page (pure: observed state → HTML) ─► guard (one browser) ─► browser
//
// It runs as long as the command, and does not change the cluster.
package ui
