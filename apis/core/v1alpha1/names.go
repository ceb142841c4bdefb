package v1alpha1

// Finalizers.
const (
	// CachedFinalizer holds ObjectDeployments, ObjectSets, ObjectSetPhases,
	// ObjectSlices, Secrets that stand in for those, and ObjectTemplates until
	// their objects are torn down.
	CachedFinalizer = "package-operator.run/cached"

	// MetricsFinalizer holds Packages until their deployment is torn down. On
	// other kinds it is left by an earlier engine and removed with
	// CachedFinalizer.
	MetricsFinalizer = "package-operator.run/metrics"
)

// Names that the API server sees.
const (
	// FieldManager is the field manager of all server-side applies.
	FieldManager = "package-operator"

	// HandoverFieldManager is the field manager of annotations on objects to adopt or release. The
	// adoption removes its annotations.
	HandoverFieldManager = "kubectl-package-handover"

	// LeaderElectionLease is the name of the Lease in the manager's namespace. It
	// is Package Operator's, so that both engines never lead together.
	LeaderElectionLease = "8a4hp84a6s.package-operator-lock"

	// AgentLeaderElectionLease is the name of the Lease in the namespace of an agent, which
	// rolls out the phases of one class. Package Operator's agent has the same.
	AgentLeaderElectionLease = "klsdfu452p3.package-operator-lock"

	// DefaultNamespace is the namespace that the manager is installed in.
	DefaultNamespace = "package-operator-system"

	// EnginePackage is the name of the only ClusterPackage that can contain the objects
	// of an engine itself. Package Operator's own package has this name.
	EnginePackage = "package-operator"
)

// Types of Secrets that the engine makes.
const (
	// SecretSliceType is the type of a Secret that holds objects of a revision.
	SecretSliceType = "package-operator.run/slice"

	// HashKeyType is the type of a Secret with the key for hashes of the sensitive input of one
	// Package.
	HashKeyType = "package-operator.run/hash-key"
)

// Classes of phases.
const (
	// PhaseClassDefault is the class that the manager serves.
	PhaseClassDefault = "default"

	// PhaseClassHostedCluster is the class of HyperShift's hosted clusters.
	PhaseClassHostedCluster = "hosted-cluster"
)

// LegacyFieldManagers are the field managers of earlier engines, which wrote objects by updates.
// Their entries in managedFields are migrated before the first apply.
func LegacyFieldManagers() []string {
	return []string{FieldManager, "package-operator-manager", "remote-phase-manger"}
}
