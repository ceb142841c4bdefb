// Package test holds packages that the tests of several packages share. Programs must not import
// them.
package test
