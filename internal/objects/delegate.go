package objects

// Delegate is the source of an ObjectSetPhase, which represents a phase with a class. The agent of
// the class writes the objects of the phase, and reports on its status.
type Delegate struct {
	// Class names the agent.
	Class string
	// Set is the ObjectSet that controls the ObjectSetPhase, as in Package Operator.
	Set Owner
	// Objects is the number of objects in the phase.
	Objects int
	// Paused is spec.paused; nil if the field is omitted.
	Paused *bool
}

// Class returns the class of the phase that the object represents; it is empty for other objects.
func (d *Desired) Class() string {
	if d == nil || d.Delegate == nil {
		return ""
	}
	return d.Delegate.Class
}

// Owner returns the owner that should control the object: the ObjectSet for an ObjectSetPhase,
// others for any other object.
func (d *Desired) Owner(others Owner) Owner {
	if d == nil || d.Delegate == nil {
		return others
	}
	return d.Delegate.Set
}
