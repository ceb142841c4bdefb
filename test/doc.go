// Package test holds what the tests of several packages share. No program links it.
package test
