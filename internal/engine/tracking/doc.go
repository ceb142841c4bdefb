// Package tracking knows, for the engine and its watches, the owner of every managed object, the
// template that it is compared with, and the fields that probes read. It makes a compact record of
// each live object, and enqueues the owner if the record changes.
package tracking
