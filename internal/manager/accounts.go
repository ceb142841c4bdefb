package manager

import (
	"fmt"
	"strconv"
)

// accountsRequired selects the packages that are installed only as a ServiceAccount. It is a flag
// with the values of a boolean, and all.
type accountsRequired string

const (
	// These are the values of the flag, which means true if it has none.
	accountsOfNone       accountsRequired = "false"
	accountsOfNamespaces accountsRequired = "true"
	accountsOfAll        accountsRequired = "all"
)

// String implements pflag.Value.
func (a *accountsRequired) String() string { return string(*a) }

// Type implements pflag.Value.
func (a *accountsRequired) Type() string { return "true|all" }

// Set implements pflag.Value.
func (a *accountsRequired) Set(value string) error {
	if value == string(accountsOfAll) {
		*a = accountsOfAll
		return nil
	}
	of, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("want true, false or all")
	}
	if *a = accountsOfNone; of {
		*a = accountsOfNamespaces
	}
	return nil
}

// ofNamespaces reports whether namespaced packages need an account.
func (a accountsRequired) ofNamespaces() bool { return a == accountsOfNamespaces || a == accountsOfAll }

// ofAll reports whether cluster-scoped packages need one, too.
func (a accountsRequired) ofAll() bool { return a == accountsOfAll }
