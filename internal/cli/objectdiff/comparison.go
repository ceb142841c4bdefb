package objectdiff

// Comparison is how two revisions differ. Its JSON fields are stable.
type Comparison struct {
	From    int64        `json:"from"`
	To      int64        `json:"to"`
	Phases  *OrderChange `json:"phases,omitempty"`
	Probes  bool         `json:"probesDiffer,omitempty"`
	Objects []Difference `json:"objects"`
}

// OrderChange is another list of phases.
type OrderChange struct {
	Before []string `json:"before"`
	After  []string `json:"after"`
}

// Difference is an object that is not the same in both revisions.
type Difference struct {
	Action      Kind     `json:"action"`
	Group       string   `json:"group,omitempty"`
	Kind        string   `json:"kind"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name"`
	Phase       string   `json:"phase"`
	PhaseBefore string   `json:"phaseBefore,omitempty"`
	Fields      []Change `json:"fields,omitempty"`
}
