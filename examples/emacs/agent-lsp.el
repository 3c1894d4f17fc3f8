;;; agent-lsp.el --- An AI coding agent for the files of a project  -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools

;;; Commentary:

;; Copy this file to where Emacs finds it and write (require 'agent-lsp) in your init file.
;;
;;   M-x agent-lsp-run         run a prompt
;;   M-x agent-lsp-run-region  run a prompt about the region
;;   M-x agent-lsp-cancel      stop what runs
;;   M-x agent-lsp-actions     what can be done about what the agent shows on this line
;;   M-x agent-lsp-validate    run the project's linters and tests
;;   M-x agent-lsp-mode        set the permission mode
;;   M-x agent-lsp-approvals   choose one of the waiting questions and answer it
;;   M-x agent-lsp-trust       show what the project would execute, and decide
;;   M-x agent-lsp-status      what the agent is doing
;;
;; A question comes in the minibuffer; C-g leaves it waiting, behind `agent-lsp-approvals' and `agent-lsp-actions'.
;;
;; Eglot has one server for a buffer, which is your language's.  This is therefore a client of its own, on the jsonrpc
;; library of Emacs; it works beside Eglot and lsp-mode, and starts one server for a project with the first command.

;;; Code:

(require 'cl-lib)
(require 'flymake)
(require 'jsonrpc)
(require 'project)
(require 'url-parse)
(require 'url-util)

(defgroup agent-lsp nil "An AI coding agent." :group 'tools)

(defcustom agent-lsp-command '("agent-lsp" "serve")
  "The program that is started for a project, and its arguments."
  :type '(repeat string))

(defcustom agent-lsp-settings nil
  "Settings of the agent, as a plist; docs/configuration.md has the keys."
  :type 'plist)

(defvar agent-lsp--servers (make-hash-table :test #'equal) "The connection of each project root.")
(defvar agent-lsp--diagnostics (make-hash-table :test #'equal) "What servers report: a list for each file.")
(defvar agent-lsp--progress nil "What the agent is doing, for the mode line.")

;; The connection

(defclass agent-lsp-server (jsonrpc-process-connection)
  ((-events-buffer-scrollback-size :initform 200000)
   (-events-buffer-config :initform '(:size 200000 :format full)))
  "A server; the slots are the size of its log, for older and newer jsonrpc.")

(cl-defmethod jsonrpc-connection-send ((server agent-lsp-server) &rest message)
  "Send a MESSAGE to a SERVER; a reply whose result is a function is sent when that has returned.
A question to the user must not be asked where messages are received: while it waits, later ones would be lost."
  (let ((result (plist-get message :result)))
    (if (functionp result)
        (run-with-timer 0 nil (lambda ()
                                (jsonrpc-connection-send server :id (plist-get message :id) :result (funcall result))))
      (cl-call-next-method))))

(defun agent-lsp--root ()
  (let ((project (project-current)))
    (expand-file-name (if project (project-root project) default-directory))))

(defun agent-lsp--server ()
  "The server of the current project, started if it does not run."
  (let* ((root (agent-lsp--root))
         (server (gethash root agent-lsp--servers)))
    (if (and server (jsonrpc-running-p server))
        server
      (puthash root (agent-lsp--start root) agent-lsp--servers))))

(defun agent-lsp--start (root)
  (let* ((default-directory root)
         (name (format "agent-lsp %s" (abbreviate-file-name root)))
         (server (make-instance
                  'agent-lsp-server
                  :name name
                  :request-dispatcher #'agent-lsp--request
                  :notification-dispatcher #'agent-lsp--notification
                  :process (lambda ()
                             (make-process :name name
                                           :command agent-lsp-command
                                           :connection-type 'pipe
                                           :coding 'utf-8-emacs-unix
                                           :noquery t
                                           :stderr (get-buffer-create (format "*%s stderr*" name)))))))
    (jsonrpc-request
     server :initialize
     `( :processId ,(emacs-pid)
        :clientInfo (:name "Emacs" :version ,emacs-version)
        :rootUri ,(agent-lsp--uri root)
        :initializationOptions ( :documents t :diagnostics t
                                 ,@(and agent-lsp-settings `(:settings ,agent-lsp-settings)))
        :capabilities ( :general (:positionEncodings ["utf-32"])
                        :window (:workDoneProgress t :showDocument (:support t))))
     :timeout 30)
    (jsonrpc-notify server :initialized (make-hash-table))
    server))

(defun agent-lsp--call (method params then)
  "Send a request; THEN takes the result, later, in the same directory.
Emacs does not wait for it: messages that come together with an awaited answer are left lying until the next one comes."
  (let ((directory default-directory))
    (jsonrpc-async-request
     (agent-lsp--server) method params
     :timeout 60
     :success-fn (lambda (result)
                   (when then
                     (run-with-timer 0 nil (lambda ()
                                             (let ((default-directory directory))
                                               (funcall then result))))))
     :error-fn (jsonrpc-lambda (&key message &allow-other-keys) (message "Agent: %s" message)))))

(defun agent-lsp--execute (command &optional argument then)
  "Ask the server to execute a COMMAND; THEN takes the result, as in `agent-lsp--call'."
  (agent-lsp--call :workspace/executeCommand `(:command ,command :arguments ,(if argument (vector argument) [])) then))

;; Files and positions; a character is a code point, which is agreed on at the start

(defun agent-lsp--uri (path)
  (concat "file://" (url-hexify-string (expand-file-name path) url-path-allowed-chars)))

(defun agent-lsp--path (uri)
  (decode-coding-string (url-unhex-string (url-filename (url-generic-parse-url uri))) 'utf-8))

(defun agent-lsp--point (position)
  (save-excursion
    (goto-char (point-min))
    (forward-line (plist-get position :line))
    (min (+ (point) (plist-get position :character)) (line-end-position))))

(defun agent-lsp--position (point)
  (save-excursion
    (goto-char point)
    `(:line ,(1- (line-number-at-pos)) :character ,(- point (line-beginning-position)))))

(defun agent-lsp--range (start end)
  (save-restriction
    (widen)
    `(:start ,(agent-lsp--position start) :end ,(agent-lsp--position end))))

(defun agent-lsp--refresh (buffer)
  "Read the file of a BUFFER again if it was changed by others and not in Emacs."
  (with-current-buffer buffer
    (unless (or (buffer-modified-p) (verify-visited-file-modtime) (not (file-exists-p buffer-file-name)))
      (revert-buffer t t t))))

(defun agent-lsp--buffers ()
  (cl-remove-if-not (lambda (buffer)
                      (let ((file (buffer-file-name buffer)))
                        (and file (not (file-remote-p file)))))
                    (buffer-list)))

;; What the server asks of the editor

(defun agent-lsp--request (_server method params)
  (pcase method
    ('window/showMessageRequest (lambda () (agent-lsp--answer params)))
    ('window/showDocument (agent-lsp--show-document params))
    ('window/workDoneProgress/create nil)
    ('agent/readDocument (agent-lsp--read-document params))
    ('agent/writeDocument (agent-lsp--write-document params))
    ('agent/diagnostics (agent-lsp--report-diagnostics params))
    (_ (jsonrpc-error :code -32601 :message (format "There is no method %s" method)))))

(defun agent-lsp--choose (prompt choices)
  "Let the user choose one of the CHOICES; nil where that was declined."
  (if (active-minibuffer-window)
      (ignore (message "Agent: a question waits; M-x agent-lsp-approvals"))
    (condition-case nil
        (completing-read (concat prompt " ") choices nil t nil nil (car choices))
      ((quit error) nil))))

(defun agent-lsp--answer (question)
  (let* ((titles (mapcar (lambda (action) (plist-get action :title)) (plist-get question :actions)))
         (title (agent-lsp--choose (plist-get question :message) titles)))
    (and (member title titles) `(:title ,title))))

(defun agent-lsp--show-document (params)
  (let ((buffer (find-file-noselect (agent-lsp--path (plist-get params :uri)) t))
        (selection (plist-get params :selection)))
    (agent-lsp--refresh buffer)
    (with-current-buffer buffer
      (when selection
        (goto-char (agent-lsp--point (plist-get selection :start)))))
    (if (eq (plist-get params :takeFocus) t)
        (pop-to-buffer buffer)
      (display-buffer buffer))
    '(:success t)))

(defun agent-lsp--document (params)
  (let ((buffer (find-buffer-visiting (agent-lsp--path (plist-get params :uri)))))
    (when buffer
      (agent-lsp--refresh buffer)
      buffer)))

(defun agent-lsp--read-document (params)
  (let ((buffer (agent-lsp--document params)))
    (when buffer
      (with-current-buffer buffer
        (save-restriction
          (widen)
          `( :text ,(buffer-substring-no-properties (point-min) (point-max))
             :version ,(buffer-chars-modified-tick)))))))

(defun agent-lsp--write-document (params)
  "Edit a buffer that is still as the server saw it, in one undo step, and save."
  (let ((buffer (agent-lsp--document params))
        (version (plist-get params :version)))
    (cond
     ((not buffer) '(:applied :json-false :reason "the file is not open"))
     ((and version (/= version (buffer-chars-modified-tick buffer)))
      '(:applied :json-false :reason "the file was edited meanwhile"))
     ((not (verify-visited-file-modtime buffer))
      '(:applied :json-false :reason "the file was changed on disk and in the editor"))
     (t
      (with-current-buffer buffer
        (condition-case problem
            (atomic-change-group
              (undo-boundary)
              (agent-lsp--apply (plist-get params :edits))
              (undo-boundary)
              (when (eq (plist-get params :save) t)
                (let ((save-silently t))
                  (save-buffer)))
              '(:applied t))
          (error `(:applied :json-false :reason ,(error-message-string problem)))))))))

(defun agent-lsp--apply (edits)
  "Apply text EDITS, whose positions are those before all of them."
  (save-restriction
    (widen)
    (let ((changes (mapcar (lambda (edit)
                             (let ((range (plist-get edit :range)))
                               (list (copy-marker (agent-lsp--point (plist-get range :start)))
                                     (copy-marker (agent-lsp--point (plist-get range :end)))
                                     (plist-get edit :newText))))
                           edits)))
      (pcase-dolist (`(,start ,end ,text) (nreverse changes))
        (replace-region-contents start end (lambda () text))))))

(defun agent-lsp--report-diagnostics (params)
  "What others report in Flymake, of one file or of all."
  (let ((uri (plist-get params :uri)))
    (cl-loop for buffer in (if uri (remq nil (list (agent-lsp--document params))) (agent-lsp--buffers))
             vconcat (with-current-buffer buffer
                       `[( :uri ,(agent-lsp--uri buffer-file-name)
                           :version ,(buffer-chars-modified-tick)
                           :diagnostics ,(cl-loop for each in (flymake-diagnostics)
                                                  unless (eq (flymake-diagnostic-backend each) #'agent-lsp-flymake)
                                                  vconcat (vector (agent-lsp--from-flymake each))))]))))

(defun agent-lsp--from-flymake (diagnostic)
  `( :range ,(agent-lsp--range (flymake-diagnostic-beg diagnostic) (flymake-diagnostic-end diagnostic))
     :severity ,(pcase (get (flymake-diagnostic-type diagnostic) 'flymake-category)
                  ('flymake-error 1)
                  ('flymake-warning 2)
                  (_ 3))
     :message ,(flymake-diagnostic-text diagnostic)))

;; What the server tells

(defun agent-lsp--notification (_server method params)
  (pcase method
    ('window/showMessage (message "%s" (plist-get params :message)))
    ('textDocument/publishDiagnostics (agent-lsp--show-diagnostics params))
    ('$/progress (agent-lsp--show-progress (plist-get params :value)))))

(defun agent-lsp--show-progress (value)
  (let ((ended (equal (plist-get value :kind) "end"))
        (message (plist-get value :message)))
    (setq agent-lsp--progress (cond (ended nil) (message (format " Agent: %s" message)) (t " Agent")))
    (force-mode-line-update t)
    (mapc #'agent-lsp--refresh (agent-lsp--buffers))))

(defun agent-lsp--show-diagnostics (params)
  (let* ((path (agent-lsp--path (plist-get params :uri)))
         (buffer (find-buffer-visiting path)))
    (puthash path (append (plist-get params :diagnostics) nil) agent-lsp--diagnostics)
    (when buffer
      (with-current-buffer buffer
        (agent-lsp--ensure-flymake)))))

(defun agent-lsp--ensure-flymake ()
  "Show what is reported of the current buffer, if there was ever anything."
  (unless (eq 'never (gethash buffer-file-name agent-lsp--diagnostics 'never))
    (add-hook 'flymake-diagnostic-functions #'agent-lsp-flymake nil t)
    (unless flymake-mode
      (flymake-mode))
    (flymake-start)))

(defun agent-lsp-flymake (report &rest _)
  "A Flymake backend that gives REPORT what the agent's server reports."
  (funcall report
           (save-restriction
             (widen)
             (mapcar #'agent-lsp--to-flymake (gethash buffer-file-name agent-lsp--diagnostics)))))

(defun agent-lsp--to-flymake (diagnostic)
  (let* ((range (plist-get diagnostic :range))
         (start (agent-lsp--point (plist-get range :start)))
         (end (agent-lsp--point (plist-get range :end))))
    (when (= start end)
      (setq end (save-excursion (goto-char start) (line-end-position))))
    (flymake-make-diagnostic (current-buffer) start end
                             (pcase (plist-get diagnostic :severity) (1 :error) (2 :warning) (_ :note))
                             (plist-get diagnostic :message)
                             diagnostic)))

(add-hook 'find-file-hook #'agent-lsp--ensure-flymake)
(add-to-list 'global-mode-string '(:eval agent-lsp--progress) t)

;; Commands

;;;###autoload
(defun agent-lsp-run (prompt)
  "Run a PROMPT."
  (interactive "sAgent: ")
  (agent-lsp--execute "agent.run" `(:prompt ,prompt)))

;;;###autoload
(defun agent-lsp-run-region (start end prompt)
  "Run a PROMPT about the region from START to END."
  (interactive "r\nsAgent, about the region: ")
  (let ((context `(:uri ,(agent-lsp--uri buffer-file-name) :range ,(agent-lsp--range start end))))
    (agent-lsp--execute "agent.run" `(:prompt ,prompt :context [,context]))))

(defun agent-lsp-cancel ()
  "Stop what the agent does in this project."
  (interactive)
  (agent-lsp--execute "agent.cancel" nil
                      (jsonrpc-lambda (&key cancelled)
                        (message (if (eq cancelled t) "Agent: cancelled" "Agent: nothing runs")))))

(defun agent-lsp-validate ()
  "Run the project's linters and tests."
  (interactive)
  (agent-lsp--execute "agent.validate" nil
                      (jsonrpc-lambda (&key started)
                        (message (if (eq started t) "Agent: validating" "Agent: not while a prompt runs")))))

(defun agent-lsp-mode (mode)
  "Set the permission MODE."
  (interactive (list (completing-read "Mode: " '("default" "plan" "accept_edits" "dont_ask" "bypass") nil t)))
  (agent-lsp--execute "agent.mode" `(:mode ,mode) (jsonrpc-lambda (&key mode) (message "Agent: mode %s" mode))))

(defun agent-lsp-status ()
  "Show what the agent is doing."
  (interactive)
  (agent-lsp--execute
   "agent.status" nil
   (jsonrpc-lambda (&key sessions pendingApprovals validation &allow-other-keys)
     (message "Agent: %s, %d questions wait, validation %s"
              (if (cl-find t sessions :key (lambda (session) (plist-get session :running))) "running" "idle")
              pendingApprovals validation))))

(defun agent-lsp-approvals ()
  "Choose one of the questions that wait, and answer it."
  (interactive)
  (agent-lsp--execute
   "agent.approvals.list" nil
   (lambda (waiting)
     (let* ((questions (mapcar (lambda (each) (cons (agent-lsp--title each) (plist-get each :id))) waiting))
            (question (if questions (agent-lsp--choose "Answer:" questions) (ignore (message "Agent: nothing waits"))))
            (id (cdr (assoc question questions))))
       (pcase (and id (agent-lsp--choose (concat question ":") '("Show change" "Allow" "Deny")))
         ("Show change" (agent-lsp--execute "agent.approvals.show" `(:id ,id)))
         ("Allow" (agent-lsp--execute "agent.approvals.answer" `(:id ,id :decision "allow")))
         ("Deny" (agent-lsp--execute "agent.approvals.answer" `(:id ,id :decision "deny"))))))))

(defun agent-lsp--title (approval)
  (format "%s: %s" (plist-get approval :tool) (plist-get approval :target)))

(defun agent-lsp-trust ()
  "Show what the project would execute, and decide about it."
  (interactive)
  (agent-lsp--execute
   "agent.trust" nil
   (jsonrpc-lambda (&key items &allow-other-keys)
     (if (seq-empty-p items)
         (message "Agent: this project executes nothing of its own")
       (let* ((lines (mapconcat (lambda (item)
                                  (format "%s %s (%s)" (if (eq (plist-get item :trusted) t) "[trusted]" "[new]")
                                          (plist-get item :text) (plist-get item :place)))
                                items "\n"))
              (decision (pcase (agent-lsp--choose (concat lines "\nThis project would execute or widen that:")
                                                  '("Leave it as it is" "Trust all of it" "Trust none of it"))
                          ("Trust all of it" "grant")
                          ("Trust none of it" "revoke"))))
         (when decision
           (agent-lsp--execute "agent.trust" `(:decision ,decision)
                               (jsonrpc-lambda (&key trusted &allow-other-keys)
                                 (message (if (eq trusted t) "Agent: trusted" "Agent: not trusted"))))))))))

(defun agent-lsp-actions ()
  "Choose what is done about what the agent shows on the current line."
  (interactive)
  (let* ((line (1- (line-number-at-pos nil t)))
         (here (cl-remove-if-not (lambda (each) (= line (plist-get (plist-get (plist-get each :range) :start) :line)))
                                 (gethash buffer-file-name agent-lsp--diagnostics))))
    (agent-lsp--call
     :textDocument/codeAction
     `( :textDocument (:uri ,(agent-lsp--uri buffer-file-name))
        :range ,(agent-lsp--range (line-beginning-position) (line-end-position))
        :context (:diagnostics ,(vconcat here)))
     (lambda (actions)
       (let* ((titles (mapcar (lambda (action) (cons (plist-get action :title) (plist-get action :command))) actions))
              (title (if titles (agent-lsp--choose "Action:" titles) (ignore (message "Agent: no action here"))))
              (command (cdr (assoc title titles))))
         (when command
           (agent-lsp--execute (plist-get command :command) (elt (plist-get command :arguments) 0))))))))

(defun agent-lsp-shutdown ()
  "End the server of the current project."
  (interactive)
  (let ((server (gethash (agent-lsp--root) agent-lsp--servers)))
    (when (and server (jsonrpc-running-p server))
      (jsonrpc-request server :shutdown nil :timeout 5)
      (jsonrpc-notify server :exit nil)
      (jsonrpc-shutdown server))))

(provide 'agent-lsp)
;;; agent-lsp.el ends here
