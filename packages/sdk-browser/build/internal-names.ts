/*
 * Names of properties that are of the SDK alone, and of rrweb's recorder: the scripts have short ones
 * in their place, the same in all of them, which saves 1.5 KB. None is a name of the browser, of the
 * API, of an event, or of what is sent or kept in a store: those are read by others.
 */
const ours = `
  isMarked isMine identity halted retiredAt recordAgain inOrder pageUrl exclusively loadRecorder loadMore
  isDenied calledAt recording record halt platform shared sessions server leave isStarted isStopped discard release ensure isOver retire retired touch moved still aside settle takeMissed hopeless writeAll
  retrySeconds unguard waiting current toldRoots dueRoots watchRoot tellLater tellRoots tellRoot mapForgets`
const ofRrweb = `
  addIframe addShadowRoot addedSet adoptStyleSheets adoptedStyleSheetCb attachIframe attachLinkElement
  attributeMap blockClass blockSelector bypassOptions canvasManager cssCaptured customElementCb droppedSet
  genAdds genTextAreaValueMutation idNodeMap idStyleMap iframeLoadTimeout iframeManager ignoreClass
  ignoreSelector inlineStylesheet inputCb keepIframeSrcFn mapRemoves maskInputFn maskInputOptions
  mediaInteractionCb mouseInteractionCb mousemoveCb movedMap movedSet mutationBuffers mutationCb needBlock
  needsMask newlyAddedElement nodeMap nodeMetaMap observeAttachShadow onIframeLoad onSerialize
  onStylesheetLoad patchAttachShadow preserveWhiteSpace processMutation processMutations
  processedNodeManager removeNodeFromMap removesSubTreeCache restoreHandlers sampling scrollCb selectionCb
  serializeNodeWithId serializeOptions shadowDomManager shadowDoms skipChild slimDOMOptions
  stringifyStylesheet styleDeclarationCb styleIDMap styleMirror styleSheetRuleCb stylesheetLoadTimeout
  stylesheetManager takeFullSnapshot takeSnapshot trackLinkElement trackedLinkElements viewportResizeCb`

export const internalNames = new RegExp(
  `^(?:${`${ours}${ofRrweb}`.trim().split(/\s+/).join('|')})$`,
)
