-- Health of the kinds of package-operator.run that have a status.
-- Argo CD sets obj and reads the table that is returned.

local status = obj.status or {}
local spec = obj.spec or {}
local generation = obj.metadata.generation or 0

local function health(name, message)
  return { status = name, message = message or "" }
end

-- A condition of an earlier generation says nothing about this one.
local function condition(kind)
  for _, c in ipairs(status.conditions or {}) do
    if c.type == kind and (c.observedGeneration == nil or c.observedGeneration >= generation) then
      return c
    end
  end
  return nil
end

local function is(kind, value)
  local c = condition(kind)
  return c ~= nil and c.status == value
end

local function message(kind)
  local c = condition(kind)
  return c ~= nil and c.message or ""
end

for _, kind in ipairs({ "Invalid", "package-operator.run/Invalid", "TeardownForbidden", "Stalled" }) do
  if is(kind, "True") then
    return health("Degraded", message(kind))
  end
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "being torn down")
end

if spec.lifecycleState == "Archived" then
  if is("Archived", "True") then
    return health("Healthy", "archived")
  end
  return health("Progressing", "being archived")
end

-- What is in charge meanwhile may be broken, which the end of this says.
local broken = status.currentRevision ~= nil and is("Available", "False")
if spec.lifecycleState ~= "Active" and is("AwaitingActivation", "True") and not broken then
  return health("Suspended", message("AwaitingActivation"))
end

if spec.paused == true or spec.lifecycleState == "Paused" then
  return health("Suspended", "paused")
end

for _, kind in ipairs({ "Unpacked", "Claimed" }) do
  if is(kind, "False") then
    return health("Degraded", message(kind))
  end
end

if status.observedGeneration ~= nil and status.observedGeneration < generation then
  return health("Progressing", "waiting for the change to be observed")
end

-- An ObjectTemplate has no Available condition of its own; that of Package Operator has no Ready one.
if obj.kind == "ObjectTemplate" or obj.kind == "ClusterObjectTemplate" then
  local ready = condition("Ready")
  if ready == nil and status.controllerOf ~= nil or ready ~= nil and ready.status == "True" then
    return health("Healthy", message("Ready"))
  end
  return health("Progressing", ready ~= nil and ready.message or "waiting for the object to be rendered")
end

if obj.kind == "ImageConfig" then
  return health(is("Ready", "True") and "Healthy" or "Progressing", message("Ready"))
end

local available = condition("Available")
if available == nil or available.status == "Unknown" then
  return health("Progressing", message("Progressing"))
end

local rolling = is("Progressing", "True") or is("Reconciling", "True") or is("InTransition", "True")
if available.status == "True" then
  if rolling then
    return health("Progressing", message("Progressing"))
  end
  return health("Healthy", available.message)
end

-- What waits for a person is degraded at once; what may still come is not.
if available.reason == "PreflightError" or available.reason == "CollisionDetected" then
  return health("Degraded", available.message)
end
if is("Succeeded", "True") or is("Progressing", "False") or is("Reconciling", "False") then
  return health("Degraded", available.message)
end
return health("Progressing", available.message)
