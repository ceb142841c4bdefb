// Package operate holds the commands about installed packages that say what is wrong, and put it right.
package operate
