package phases

// Scenarios start in any stage.

func (r *Revision) SetClaimed()         { r.stage.claim = claimed }
func (r *Revision) SetOpened(n int)     { r.stage.opened = n }
func (r *Revision) SetPreopened(n int)  { r.stage.preopened = n }
func (r *Revision) SetSucceeded(b bool) { r.stage.succeeded = b }
func (r *Revision) SetRemoving()        { r.stage.removal = removing }
func (p *Phase) Leave()                 { p.entered = false }
func (p *Phase) SetWrittenBefore()      { p.writtenBefore = true }
func (r *Revision) SetReleasing()       { r.stage.removal = releasing }
