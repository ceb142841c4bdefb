// Package testing holds what the tests of several packages share.
package testing
