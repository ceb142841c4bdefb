package objects

// Account is the ServiceAccount that makes requests; the zero value is the manager's own identity.
type Account struct {
	Namespace, Name string
}

// IsZero reports whether the account is the manager's own identity.
func (a Account) IsZero() bool { return a == Account{} }

// User returns the account's user name in requests to the API server; empty for the manager's own
// identity.
func (a Account) User() string {
	if a.IsZero() {
		return ""
	}
	return "system:serviceaccount:" + a.Namespace + ":" + a.Name
}

// String returns the name for messages, such as "ServiceAccount shop/deployer".
func (a Account) String() string {
	if a.IsZero() {
		return "the manager"
	}
	return "ServiceAccount " + a.Namespace + "/" + a.Name
}
