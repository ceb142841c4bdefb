package limits

import "time"

// Limits of availability probes. All but the times are counted: results do not depend on load.
const (
	Probes            = 1000                   // of one revision; each object is evaluated by all probes of its kind
	ProbeCELBytes     = 16 << 10               // of one CEL rule: up to 1 µs per byte to compile
	ProbeCELCost      = 1_000_000              // of one evaluation in units of CEL, with the strings and lists that it builds: 10 to 100 ms
	ProbeObjectCost   = 5 * ProbeCELCost       // of all probes on one object: up to a second
	ProbesCost        = 200 * ProbeCELCost     // of all probes on all objects of a revision: 5 to 20 s; 50,000 objects with ten probes take a tenth
	ProbeBudget       = 100 * time.Millisecond // for probes in one reconcile; the rest is evaluated in the next one
	ProbeJQBytes      = 2 << 10                // of one jq expression
	ProbeJQSteps      = 100_000                // instructions of one jq evaluation: some 10 ms
	ProbeJQWork       = 1 << 20                // bytes of the values that one jq evaluation builds
	ProbeJQNumberBits = 256                    // of integers in jq, which are of any length
)

// Limits of the check against the schemas that the API server publishes.
const (
	SchemaDocumentBytes   = 32 << 20 // of one group version; large CRDs reach 10 MiB
	SchemaDocumentObjects = 800_000  // JSON objects of it: one in 40 bytes, as in apps/v1 without descriptions
	// JSON objects of one kind and all that it refers to, of 1 KiB each while they are
	// decoded: more than a CustomResourceDefinition can hold; the API server alone checks
	// a larger kind
	SchemaObjects     = 50_000
	SchemaNesting     = 200      // of lists and objects in a definition: 60 or so are in the deepest known ones
	SchemaSearchBytes = 64 << 20 // that are decoded to find fields of a kind: half a second
)
