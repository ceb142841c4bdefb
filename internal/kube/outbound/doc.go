// Package outbound bounds connections to servers that are not trusted: which addresses they reach,
// and how long and how slow an answer may be.
//
// An address is public, private, or local: on the host itself, on its link, or a cloud's
// service that hands out credentials. Namespaced objects reach private addresses only if the
// manager's flags permit it, because the manager runs within networks that the object's
// author might not reach otherwise. Only tests permit local addresses. Addresses are checked
// as they are dialled, after the resolution of names, and before a proxy is asked.
package outbound
