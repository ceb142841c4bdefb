// Package clitest runs command lines in tests of the packages that hold the commands, and has what they run on.
package clitest
