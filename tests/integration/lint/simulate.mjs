// Judges requests by @cloud-copilot/iam-simulate, which knows nothing of ours:
// `node simulate.mjs FILE`. FILE holds a list of {identity, resource, boundary, request}; prints
// a list of "allowed" or of what iam-simulate says otherwise.
import {readFileSync} from 'node:fs'
import {runSimulation} from '@cloud-copilot/iam-simulate'

const named = (documents) => documents.map((policy, n) => ({name: `p${n}`, policy}))
const answers = []
for (const asked of JSON.parse(readFileSync(process.argv[2]))) {
  const simulation = {
    request: asked.request,
    identityPolicies: named(asked.identity),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    ...(asked.resource ? {resourcePolicy: asked.resource} : {}),
    ...(asked.boundary ? {permissionBoundaryPolicies: named([asked.boundary])} : {}),
  }
  const found = await runSimulation(simulation, {})
  answers.push(
    found.resultType === 'error' ? JSON.stringify(found.errors) :
    found.overallResult === 'Allowed' ? 'allowed' : 'denied')
}
console.log(JSON.stringify(answers))
