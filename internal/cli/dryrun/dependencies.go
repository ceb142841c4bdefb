package dryrun

// Dependency is something that a package depends on, as it would be. Its JSON fields are stable.
type Dependency struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"`
	// Satisfied means that nothing has to be waited for, Failed that waiting does not help.
	Satisfied bool   `json:"satisfied"`
	Failed    bool   `json:"failed,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// By is what satisfies it, such as "Package shop/shop.db", in Version.
	By      string `json:"by,omitempty"`
	Version string `json:"version,omitempty"`
}

// Installation is a package that would be installed or changed because others depend on it. Its JSON fields are stable.
type Installation struct {
	// Object is such as "Package shop/shop.db".
	Object  string `json:"object"`
	Package string `json:"package"`
	Version string `json:"version"`
	// From is the version before a change; empty for one that is created.
	From string `json:"from,omitempty"`
	// Because are what needs it, such as "Package shop/shop → db (>=1)".
	Because []string `json:"because"`
}

// Depend adds what the package depends on.
func (p *Plan) Depend(dependencies []Dependency, installations []Installation) {
	p.Dependencies, p.Installations = dependencies, installations
	switch {
	case p.Unsatisfied() > 0:
		p.Outcome = OutcomeRefused
	case len(installations) > 0 && p.Outcome == OutcomeNothing:
		p.Outcome = OutcomeChanges
	}
}

// Unsatisfied is the number of dependencies that cannot be had, without optional ones.
func (p *Plan) Unsatisfied() int {
	n := 0
	for _, d := range p.Dependencies {
		if d.Failed && !d.Optional {
			n++
		}
	}
	return n
}
