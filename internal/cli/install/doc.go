// Package install holds the commands that install packages and that follow them until they are
// deleted.
package install
