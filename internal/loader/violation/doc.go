// Package violation describes problems of a package for its author. It keeps Package Operator's
// reasons word for word, because tests and users match them. The same package has the same
// violations in the same order.
package violation
