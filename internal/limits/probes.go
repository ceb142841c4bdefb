package limits

import "time"

// Limits of availability probes. They count steps instead of time, so that results do not depend on
// the load.
const (
	Probes            = 1000                   // probes of one revision; each object is evaluated by all probes of its kind
	ProbeCELBytes     = 16 << 10               // one CEL rule, at up to 1 µs a byte to compile
	ProbeCELCost      = 1_000_000              // one evaluation in units of CEL, including strings and lists, 10 to 100 ms
	ProbeObjectCost   = 5 * ProbeCELCost       // all probes on one object, up to a second
	ProbesCost        = 200 * ProbeCELCost     // all probes on all objects of a revision, 5 to 20 s; 50,000 objects with ten probes take a tenth
	ProbeBudget       = 100 * time.Millisecond // internal: probes in one reconcile; the others follow in the next one
	ProbeJQBytes      = 2 << 10                // one jq expression
	ProbeJQSteps      = 100_000                // instructions of one jq evaluation, about 10 ms
	ProbeJQWork       = 1 << 20                // bytes of the values that one jq evaluation builds
	ProbeJQNumberBits = 256                    // integers in jq, which can have any length
)

// Limits of schemas of the API server.
const (
	SchemaDocumentBytes   = 32 << 20 // schemas of one group version; large CRDs have 10 MiB
	SchemaDocumentObjects = 800_000  // JSON objects in it
	SchemaObjects         = 50_000   // JSON objects in the schema of one kind, at 1 KiB each; the API server alone checks a larger kind
	SchemaNesting         = 200      // nested lists and objects in a definition; the deepest known ones have about 60
	SchemaSearchBytes     = 64 << 20 // bytes decoded to find fields of a kind, half a second
)
