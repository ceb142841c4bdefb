// Package clitest runs command lines in tests of the packages that implement the commands, and
// provides their fixtures.
package clitest
