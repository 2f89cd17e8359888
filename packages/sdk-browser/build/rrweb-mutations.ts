import type { Patch } from './rrweb.ts'

/*
 * What makes rrweb's way with a change of the page cheaper. A page makes thousands a second, and
 * each of these was a part of the time that its scripts wait for ours (bench/sdk-mutations.ts).
 */
export const mutationPatches: Patch[] = [
  {
    why: 'Each getter was looked up by two names each time it was asked.',
    from: 'const untaintedAccessorCache = {};',
    to: 'function mutationObserverCtor() {',
    by: `const getter = (key, name) => {
  const { get } = Object.getOwnPropertyDescriptor(getUntaintedPrototype(key), name);
  return (n) => get.call(n);
};
const [childNodes, parentNode, parentElement, textContent, firstChild, lastChild, nextSibling, previousSibling, isConnected] =
  testableAccessors.Node.map((name) => getter("Node", name));
const hostOf = getter("ShadowRoot", "host");
const shadowRootOf = getter("Element", "shadowRoot");
const host = (n) => n && n.nodeType === 11 && "host" in n ? hostOf(n) : null;
const shadowRoot = (n) => n && n.nodeType === 1 ? shadowRootOf(n) : null;
function mutationObserverCtor() {`,
  },
  {
    why: 'The same.',
    from: '    "ownerDocument",\n    "firstChild",\n    "lastChild",\n    "nextSibling",\n    "previousSibling"\n  ],\n  ShadowRoot: ["host", "styleSheets"],',
    by: '    "firstChild",\n    "lastChild",\n    "nextSibling",\n    "previousSibling",\n    "isConnected"\n  ],\n  ShadowRoot: ["host"],',
  },
  {
    why: 'What nobody asks for any more.',
    from: 'const patch = undefined;\nconst index = {',
    to: '};',
    by: `const index = {
  childNodes, parentNode, parentElement, textContent, firstChild, lastChild, nextSibling, previousSibling,
  host, shadowRoot, mutationObserverCtor
};`,
  },
  {
    why: 'Two looks for names in the prototypes of every node.',
    from: 'const hostEl = (\n',
    to: '\n}\n',
    by: `const hostEl = index.host(n);
  return Boolean(hostEl) && index.shadowRoot(hostEl) === n;
}
`,
  },
  {
    why: 'The browser knows whether a node is in the page, through shadow roots as well.',
    from: 'function getShadowHost(n) {',
    to: 'const moveKey = ',
    by: 'const inDom = isConnected;\nconst moveKey = ',
  },
  {
    why: 'The same.',
    from: 'this.mirror.getId(getShadowHost(n))',
    by: 'this.mirror.getId(index.host(parentNode2))',
  },
  {
    why: 'Nodes of the replay are none of a page.',
    from: 'function hasShadowRoot(n) {',
    to: '\n}\n',
    by: 'const hasShadowRoot = (n) => Boolean(index.shadowRoot(n));\n',
  },
  {
    why: 'One selector tells what is blocked, its class too, in one question (BLOCKED in recorder.ts).',
    from: 'function isBlocked(node, blockClass, blockSelector, checkAncestors) {',
    to: '\n}\n',
    by: `function isBlocked(node, blockClass, blockSelector, checkAncestors) {
  const el = node && closestElementOfNode(node);
  return Boolean(el && (checkAncestors ? el.closest(blockSelector) : el.matches(blockSelector)));
}
`,
  },
  {
    why: 'The same.',
    from: 'function _isBlockedElement(element, blockClass, blockSelector) {',
    to: '\n}\n',
    by: 'const _isBlockedElement = (element, blockClass, blockSelector) => element.matches(blockSelector);\n',
  },
  {
    why: 'Lists of children are made for each node that is asked for them.',
    from: 'index.childNodes(n).forEach((childN) => deepDelete(addsSet, childN));',
    by: `for (let child = index.firstChild(n); child; child = index.nextSibling(child)) deepDelete(addsSet, child);`,
  },
  {
    why: `What is in the page is told, wherever it stood before: a node that was put into a new one was
      lost where what is around that was moved in the same go.`,
    from: 'for (const n2 of this.movedSet) {',
    to: 'this.addedSet.add(n2);\n      }',
    by: 'for (const n2 of this.movedSet) this.addedSet.add(n2);',
  },
  {
    why: 'The same.',
    from: 'if (!inDom(parentNode2)) {',
    to: 'if (this.addedSet.has(index.lastChild(parentNode2))) {',
    by: 'ancestorBad = !inDom(parentNode2);\n            if (this.addedSet.has(index.lastChild(parentNode2))) {',
  },
  {
    why: 'The same: where a node stood before is not looked at any more.',
    from: 'if (ancestorBad) {\n          this.droppedSet.add(n);\n          continue;',
    by: 'if (ancestorBad) {\n          continue;',
  },
  {
    why: 'The same.',
    from: 'deepDelete(this.addedSet, n);\n              this.droppedSet.add(n);',
    by: 'deepDelete(this.addedSet, n);',
  },
  { why: 'The same.', from: 'processRemoves(n, this.removesSubTreeCache);', by: '' },
  { why: 'The same.', from: 'this.droppedSet.delete(n);', by: '' },
  {
    why: 'The same.',
    from: '__publicField(this, "droppedSet", ',
    to: '__publicField(this, "mutationCb");',
    by: '',
  },
  {
    why: 'The same.',
    from: 'this.droppedSet = /* @__PURE__ */ new Set();\n      this.removesSubTreeCache = /* @__PURE__ */ new Set();',
    by: '',
  },
  {
    why: 'The same; and a text is blocked where its element is, which was asked before.',
    from: 'if (!isBlocked(n, this.blockClass, this.blockSelector, false)) {\n        index.childNodes(n).forEach((childN) => this.genAdds(childN));',
    by: `if (n.nodeType === 1 && !isBlocked(n, this.blockClass, this.blockSelector, false)) {
        for (let child = index.firstChild(n); child; child = index.nextSibling(child)) this.genAdds(child);`,
  },
  {
    why: 'Taking the first of a list moves all others.',
    from: 'while (this.mapRemoves.length) {\n        this.mirror.removeNodeFromMap(this.mapRemoves.shift());\n      }',
    by: `for (const gone of this.mapRemoves.splice(0)) this.mirror.removeNodeFromMap(gone);
      for (const gone of this.mapForgets.splice(0)) this.mirror.removeNodeFromMap(gone, true);`,
  },
  {
    why: `Most changes of one go are of the same element, and what it stands in is the same for all of
      them: the page does not run meanwhile.`,
    from: 'mutations.forEach(this.processMutation);',
    by: 'blockedTarget = removedTarget = null;\n      mutations.forEach(this.processMutation);',
  },
  {
    why: 'The same.',
    from: 'class MutationBuffer {',
    by: `let blockedTarget, isTargetBlocked, isTargetShadow, removedTarget, isTargetRemoved;
class MutationBuffer {`,
  },
  {
    why: 'The same.',
    from: 'if (isBlocked(m.target, this.blockClass, this.blockSelector, true))\n            return;',
    by: `if (blockedTarget !== m.target) {
            blockedTarget = m.target;
            isTargetBlocked = isBlocked(m.target, this.blockClass, this.blockSelector, true);
            isTargetShadow = Boolean(index.host(m.target.getRootNode()));
          }
          if (isTargetBlocked) return;`,
  },
  {
    why: 'The same.',
    from: 'if (isBlocked(m.target, this.blockClass, this.blockSelector, false) || isIgnored(n',
    to: '!isSerialized(n, this.mirror)) {',
    by: 'if (nodeId < 0 || n.tagName === "TITLE") {',
  },
  {
    why: 'The same.',
    from: 'else if (isAncestorRemoved(m.target, this.mirror)) ;',
    by: `else if (removedTarget === m.target ? isTargetRemoved :
              (removedTarget = m.target, isTargetRemoved = isAncestorRemoved(m.target, this.mirror))) ;`,
  },
  {
    why: `A new node is written as it is when all changes are seen, so those of its own attributes and
      text are thrown away in the end. Of a field's type a mark is kept.`,
    from: 'switch (m.type) {\n        case "characterData": {',
    by: `if (m.type !== "childList" && m.attributeName !== "type" && this.addedSet.has(m.target)) return;
      switch (m.type) {
        case "characterData": {`,
  },
  {
    why: 'Most nodes are plain ones: ours is the way of the snapshot, without a dozen options a node.',
    from: 'const sn = serializeNodeWithId(n, {\n          doc: this.doc,',
    by: `const sn = !hasShadowRoot(n) && plainNode(this.mirror, genId, n, parentNode2) || serializeNodeWithId(n, {
          doc: this.doc,`,
  },
  {
    why: `A style is recorded whole: what rrweb told of it, if that was shorter, took an element, and four
      questions for each of its properties.`,
    from: 'if (attributeName === "style") {\n              if (!this.unattachedDoc) {',
    to: '} else if (attributeName === "open" && target.tagName === "DIALOG") {',
    by: 'if (attributeName === "open" && target.tagName === "DIALOG") {',
  },
  {
    why: 'The same.',
    from: 'if (typeof attributes.style === "string") {\n            const diffAsStr',
    to: '          return {\n            id: this.mirror.getId(attribute.node),',
    by: '          return {\n            id: this.mirror.getId(attribute.node),',
  },
  {
    why: 'The page was asked for its address for each style, with and without a URL in it.',
    from: '} else if (name === "style") {\n    return absolutifyURLs',
    by: '} else if (name === "style" && value.includes("url(")) {\n    return absolutifyURLs',
  },
]
