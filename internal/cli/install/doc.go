// Package install holds the commands that install packages, and follow them until they are deleted.
package install
