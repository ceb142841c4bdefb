package sandbox

import (
	"slices"
	"strings"
)

// Filter reports whether an entry is of interest.
type Filter func(Entry) bool

// ByUser accepts the requests of the named users, including requests that impersonate other users.
func ByUser(names ...string) Filter {
	return func(e Entry) bool { return slices.Contains(names, e.User) }
}

// ByCredential accepts the requests with one token of a user.
func ByCredential(credential string) Filter {
	return func(e Entry) bool { return e.Credential == credential }
}

// ByVerb accepts the named verbs.
func ByVerb(verbs ...string) Filter {
	return func(e Entry) bool { return slices.Contains(verbs, e.Verb) }
}

// ByResource accepts requests about the named resources, written as "pods" or
// "deployments.apps", with their subresources.
func ByResource(resources ...string) Filter {
	return func(e Entry) bool {
		return slices.Contains(resources, strings.TrimSuffix(e.Object.Resource+"."+e.Object.Group, "."))
	}
}

// Writes accepts requests that can change an object: neither reads nor dry runs.
func Writes() Filter {
	return func(e Entry) bool {
		return !e.DryRun && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
	}
}

// Not accepts requests that filter does not.
func Not(filter Filter) Filter { return func(e Entry) bool { return !filter(e) } }

func accepted(e Entry, filters []Filter) bool {
	return !slices.ContainsFunc(filters, func(f Filter) bool { return !f(e) })
}
