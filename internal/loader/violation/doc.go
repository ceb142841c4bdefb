// Package violation describes problems of a package for its author. Reasons of Package Operator are kept word for word,
// because tests and users match them. The same package has the same violations in the same order.
package violation
