import type { Patch } from './rrweb.ts'

/*
 * One observer follows the document, its frames and all shadow roots, and one buffer takes what it
 * sees. rrweb has one of each for every root: what moved between two of them was told in the order of
 * their making, so a node could be removed after it had come, and stayed unknown from then on.
 */
export const shadowPatches: Patch[] = [
  {
    why: 'One observer: it tells of all roots in the order in which it happened.',
    from: 'function initMutationObserver(options, rootEl) {',
    to: '\n}\n',
    by: `let observer;
function initMutationObserver(options, rootEl) {
  if (!mutationBuffers.length) {
    const buffer = new MutationBuffer();
    mutationBuffers.push(buffer);
    buffer.init(options);
    const [Observer] = mutationObserverCtor();
    observer = new Observer(callbackWrapper(buffer.processMutations));
  }
  observer.observe(rootEl, {
    attributes: true, attributeOldValue: true, characterData: true, characterDataOldValue: true,
    childList: true, subtree: true
  });
}
`,
  },
  {
    why: 'The same: it ends with the recording, not with a frame.',
    from: '  let mutationObserver;\n  let cleanupMutationIframe = () => {\n  };\n  if (o.recordDOM) {\n    [mutationObserver, cleanupMutationIframe] = initMutationObserver(o, o.doc);\n  }',
    by: '  initMutationObserver(o, o.doc);',
  },
  {
    why: 'The same.',
    from: '    mutationBuffers.forEach((b) => b.reset());\n    mutationObserver == null ? void 0 : mutationObserver.disconnect();\n    cleanupMutationIframe();\n',
    by: '',
  },
  {
    why: 'The same.',
    from: '      processedNodeManager.destroy();\n',
    by: `      shadowDomManager.reset();
      observer.disconnect();
      mutationBuffers.length = 0;
`,
  },
  {
    why: 'A frame that loads again, or is looked at again, was observed once more each time.',
    from: '        handlers.push(observe(iframeEl.contentDocument));',
    by: `        const doc = iframeEl.contentDocument;
        const end = frames.get(doc);
        if (end) end();
        frames.set(doc, observe(doc));`,
  },
  {
    why: 'The same.',
    from: '    const handlers = [];\n    const observe = (doc) => {',
    by: `    const frames = new Map();
    const handlers = [() => frames.forEach((end) => end())];
    const observe = (doc) => {`,
  },
  {
    why: 'Nodes of all documents are in the one buffer.',
    from: 'serializeNodeWithId(n, {\n          doc: this.doc,',
    by: 'serializeNodeWithId(n, {\n          doc: n.ownerDocument,',
  },
  {
    why: 'The same.',
    from: '              this.doc,\n              tagNameLower,',
    by: '              target.ownerDocument,\n              tagNameLower,',
  },
  {
    why: 'Which of several buffers tells of a node.',
    from: 'class ProcessedNodeManager {',
    to: '\n}\n',
    by: '',
  },
  {
    why: 'The same.',
    from: '  const processedNodeManager = new ProcessedNodeManager();\n',
    by: '',
  },
  {
    why: 'The same.',
    from: 'canvasManager,\n      keepIframeSrcFn,\n      processedNodeManager\n',
    by: 'canvasManager,\n      keepIframeSrcFn\n',
  },
  {
    why: 'The same.',
    from: '          processedNodeManager,\n          canvasManager,',
    by: '          canvasManager,',
  },
  {
    why: 'The same.',
    from: '      if (this.processedNodeManager.inOtherBuffer(n, this)) return;\n',
    by: '',
  },
  {
    why: `A root is observed from when its host comes: it may be a while until that is told, and what
      the page does inside meanwhile was lost.`,
    from: '        if (hasShadowRoot(n)) {\n          index.childNodes(index.shadowRoot(n)).forEach((childN) => {',
    to: '          });\n        }',
    by: `        const root = index.shadowRoot(n);
        if (root) {
          this.shadowDomManager.watchRoot(root);
          for (let child = index.firstChild(root); child; child = index.nextSibling(child)) this.genAdds(child);
        }`,
  },
  {
    why: 'The same: its host is told.',
    from: `            if (hasShadowRoot(n)) {
              this.shadowDomManager.addShadowRoot(
                index.shadowRoot(n),
                this.doc
              );
            }`,
    by: '            if (hasShadowRoot(n)) this.shadowDomManager.addShadowRoot(index.shadowRoot(n));',
  },
  {
    why: `Where a node was put and taken out again at once, nothing is told; of a shadow root this was not
      known, and the replay threw at what it should take out of where it had never been.`,
    from: 'if (target && this.mirror.hasNode(target)) {\n          targetId = this.mirror.getId(target);\n        }',
    by: 'if (target) targetId = this.mirror.getId(index.host(target) || target);',
  },
  {
    why: 'A host comes before what is in its shadow root.',
    from: '            if (this.addedSet.has(parentNode2)) {\n              n = parentNode2;',
    by: `            const owner = index.host(parentNode2) || parentNode2;
            if (this.addedSet.has(owner)) {
              n = owner;`,
  },
  {
    why: `The replay keeps what is in a shadow root when its host goes, by its id, and would take it up
      again as it was then, with all that is in it. So it has another id when it comes again.`,
    from: 'removeNodeFromMap(n) {\n    const id = this.getId(n);\n    this.idNodeMap.delete(id);\n    if (n.childNodes) {\n      n.childNodes.forEach(\n        (childNode) => this.removeNodeFromMap(childNode)\n      );\n    }',
    by: `removeNodeFromMap(n, isForgotten) {
    this.idNodeMap.delete(this.getId(n));
    if (isForgotten) this.nodeMetaMap.delete(n);
    const each = (parent, isGone) => {
      for (let child = index.firstChild(parent); child; child = index.nextSibling(child)) this.removeNodeFromMap(child, isGone);
    };
    each(n, isForgotten);
    const root = index.shadowRoot(n);
    if (root) each(root, true);`,
  },
  {
    why: 'The same, for what was removed inside of one.',
    from: '            this.mapRemoves.push(n);',
    by: '            (isTargetShadow ? this.mapForgets : this.mapRemoves).push(n);',
  },
  {
    why: 'The same.',
    from: '    __publicField(this, "mapRemoves", []);',
    by: '    __publicField(this, "mapRemoves", []);\n    __publicField(this, "mapForgets", []);',
  },
  {
    why: 'What is in a shadow root goes with its host.',
    from: 'function isAncestorRemoved(target, mirror2) {',
    to: '\n}\n',
    by: `function isAncestorRemoved(target, mirror2) {
  for (let at = target; at; at = index.parentNode(at) || index.host(at)) {
    if (at.nodeType === 9) return false;
    if (at.nodeType !== 11 && !mirror2.has(mirror2.getId(at))) return true;
  }
  return true;
}
`,
  },
  {
    why: 'Changes that nobody is told of, those in what is not in the page, were kept for the next time.',
    from: '      if (!payload.texts.length && !payload.attributes.length && !payload.removes.length && !payload.adds.length) {\n        return;\n      }',
    by: '',
  },
  {
    why: 'The same; and the style sheets of a root come after its host.',
    from: '      this.mutationCb(payload);',
    by: `      if (payload.texts.length || payload.attributes.length || payload.removes.length || payload.adds.length) this.mutationCb(payload);
      this.shadowDomManager.tellRoots();`,
  },
  {
    why: `Of the sheets that a root adopts rrweb told once, and when the page set them: not that there are
      none any more, nor of those that were put into the list, nor again where the replay makes the
      host anew. And of a root that was empty it told nothing.`,
    from: 'class ShadowDomManager {',
    to: '\n}\n',
    by: `class ShadowDomManager {
  constructor(options) {
    Object.assign(this, options);
    this.restoreHandlers = [];
    this.init();
  }
  init() {
    this.reset();
    // What the recording has of the sheets of each root that it has.
    this.toldRoots = new WeakMap([[document, []]]);
    this.dueRoots = new Set([document]);
    this.patchAttachShadow(window);
  }
  reset() {
    this.restoreHandlers.splice(0).forEach((end) => end());
    this.shadowDoms = new WeakSet();
  }
  addShadowRoot(root) {
    // Of one that had sheets it is told again that it has none: the browser takes them with a document.
    const told = this.toldRoots.get(root);
    this.toldRoots.set(root, told?.length === 0 || told === undefined ? [] : null);
    this.watchRoot(root);
  }
  watchRoot(root) {
    this.dueRoots.add(root);
    if (this.shadowDoms.has(root)) return;
    this.shadowDoms.add(root);
    const { mutationCb, scrollCb, mirror, bypassOptions } = this;
    const options = { ...bypassOptions, mutationCb, scrollCb, mirror, doc: root, shadowDomManager: this };
    initMutationObserver(options, root);
    this.restoreHandlers.push(initScrollObserver(options), watchPopovers(root));
  }
  observeAttachShadow({ contentWindow, contentDocument }) {
    if (!contentDocument) return;
    this.toldRoots.set(contentDocument, []);
    this.tellLater(contentDocument);
    this.patchAttachShadow(contentWindow);
  }
  patchAttachShadow(win) {
    this.restoreHandlers.push(
      spy(win.Element.prototype, "attachShadow", callbackWrapper((host2) => {
        const root = index.shadowRoot(host2);
        if (!root || !inDom(host2)) return;
        this.tellLater(root);
        this.watchRoot(root);
      }))
    );
  }
  tellLater(root) {
    if (root.nodeType !== 9 && !isShadowRoot(root)) return;
    if (!this.dueRoots.size) inOwnTask(callbackWrapper(() => mutationBuffers[0] && mutationBuffers[0].emit()));
    this.dueRoots.add(root);
  }
  tellRoots() {
    for (const root of this.dueRoots) {
      const id = this.mirror.getId(index.host(root) || root);
      if (id > 0 && inDom(root)) this.tellRoot(root, id);
      // Not before: the look at its sheets asks for another one.
      this.dueRoots.delete(root);
    }
  }
  tellRoot(root, id) {
    const { mirror, toldRoots, bypassOptions: { stylesheetManager } } = this;
    const told = toldRoots.has(root) ? toldRoots.get(root) : [];
    // Nothing of what is in a host is seen beside an empty root.
    if (!toldRoots.has(root) && !index.firstChild(root)) {
      const node = { type: 3, textContent: "", id: genId(), isShadow: true };
      this.mutationCb({ adds: [{ parentId: id, nextId: null, node }], removes: [], texts: [], attributes: [] });
    }
    const sheets = [...(root.adoptedStyleSheets || [])];
    toldRoots.set(root, sheets);
    if (told?.length === sheets.length && sheets.every((sheet, at) => sheet === told[at])) return;
    // A player makes a sheet where it is told of it: the document is still there when it comes so far.
    const doc = root.ownerDocument || root;
    stylesheetManager.adoptStyleSheets(sheets, id, mirror.getId(doc), toldRoots.get(doc) || []);
  }
}
`,
  },
  {
    why: 'The same.',
    from: '  adoptStyleSheets(sheets, hostId) {',
    to: '  reset() {',
    by: `  adoptStyleSheets(sheets, id, docId, docSheets) {
    const { styleMirror } = this;
    const styles = [];
    const idOf = (sheet) => {
      if (!styleMirror.has(sheet)) {
        const rules = Array.from(sheet.cssRules, (rule, index2) => ({ rule: stringifyRule(rule, sheet.href), index: index2 }));
        styles.push({ styleId: styleMirror.add(sheet), rules });
      }
      return styleMirror.getId(sheet);
    };
    const styleIds = sheets.map(idOf);
    if (styles.length) this.adoptedStyleSheetCb({ id: docId, styleIds: id === docId ? styleIds : docSheets.map(idOf), styles });
    if (!styles.length || id !== docId) this.adoptedStyleSheetCb({ id, styleIds });
  }
  reset() {`,
  },
  {
    why: 'The same: one look for all roots of a window.',
    from: 'function initAdoptedStyleSheetObserver({',
    to: '\n}\n',
    by: `const initAdoptedStyleSheetObserver = ({ shadowDomManager }, { defaultView }) =>
  spyOnAdopted(defaultView, callbackWrapper((root) => shadowDomManager.tellLater(root)));
`,
  },
]
