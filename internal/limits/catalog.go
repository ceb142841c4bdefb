package limits

// Limits of what repositories offer.
const (
	AvailablePartBytes = 512 << 10 // of one AvailablePackage as JSON: a third of what etcd takes
	RepositoryProblems = 100       // that are kept of one repository
	ConstraintGroups   = 32        // alternatives of one constraint on versions, each of which is checked for every version
	NearestVersions    = 3         // that a message about a choice names, of those that were not chosen
)
