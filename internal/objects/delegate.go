package objects

// Delegate is what an ObjectSetPhase is made of that stands for a phase with a class: the
// agent of the class writes the objects in it, and reports on its status.
type Delegate struct {
	// Class names the agent.
	Class string
	// Set is the ObjectSet, which controls it, as it does with Package Operator.
	Set Owner
	// Objects is the number of objects in it.
	Objects int
	// Paused is spec.paused; nil where the field is omitted.
	Paused *bool
}

// Class returns the class of the phase that the object stands for; it is empty for others.
func (d *Desired) Class() string {
	if d == nil || d.Delegate == nil {
		return ""
	}
	return d.Delegate.Class
}

// Owner returns the owner that is to control the object, where others are controlled by one.
func (d *Desired) Owner(others Owner) Owner {
	if d == nil || d.Delegate == nil {
		return others
	}
	return d.Delegate.Set
}
