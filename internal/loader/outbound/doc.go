// Package outbound bounds connections to servers that are not trusted: which addresses they reach, and how long and how
// slow an answer may be.
package outbound
