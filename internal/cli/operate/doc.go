// Package operate holds the commands that show the state of installed packages, and mend it.
package operate
