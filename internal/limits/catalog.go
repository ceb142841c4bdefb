package limits

// Limits of what repositories offer.
const (
	AvailablePartBytes = 512 << 10 // of one AvailablePackage as JSON: a third of what etcd takes
	RepositoryProblems = 100       // that are kept of one repository
)
