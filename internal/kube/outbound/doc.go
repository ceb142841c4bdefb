// Package outbound bounds connections to servers that are not trusted: which addresses they reach, and how long and how
// slow an answer may be.
//
// Addresses are those of the internet, private ones, and local ones: of the host itself,
// of its link, and of services of clouds that hand out credentials. Namespaced objects
// lead to private ones where the manager's flags say so, since the manager stands within
// networks that its author may not reach otherwise; local ones are an affair of tests.
// Addresses are checked as they are dialled, after the resolution of names, and before a
// proxy is asked.
package outbound
