// Package operate holds the commands that show how installed packages stand, and put right what is wrong.
package operate
